// A client of @grpc/grpc-js, an implementation of gRPC of its own: calls of every kind, and what came of them as JSON.
const grpc = require("@grpc/grpc-js");

const [target, root] = process.argv.slice(2);
const same = (buffer) => buffer;
const credentials = root
  ? grpc.credentials.createSsl(require("fs").readFileSync(root))
  : grpc.credentials.createInsecure();
const unlimited = { "grpc.max_receive_message_length": -1, "grpc.ssl_target_name_override": "localhost" };
const connect = (options) => new grpc.Client(target, credentials, { ...unlimited, ...options });

function unary(client, name, content, options = {}, metadata = new grpc.Metadata()) {
  return new Promise((resolve) => {
    const call = client.makeUnaryRequest(`/t/${name}`, same, same, content, metadata, options, (error, answer) =>
      resolve(error ? [grpc.status[error.code], error.details] : answer),
    );
    if (options.cancelled) setTimeout(() => call.cancel(), 50);
  });
}

function stream(client, contents) {
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest("/t/stream", same, same);
    const received = [];
    const rest = [...contents];
    call.on("data", (message) => {
      received.push(message.toString());
      if (rest.length) call.write(rest.shift());
      else call.end();
    });
    call.on("error", () => {});
    call.on("status", (status) => resolve([received, grpc.status[status.code]]));
    call.write(rest.shift());
  });
}

async function main() {
  const client = connect({});
  const results = {};
  results.echo = (await unary(client, "echo", Buffer.from("hello"))).toString();
  results.empty = (await unary(client, "echo", Buffer.alloc(0))).length;
  const large = Buffer.alloc(5_000_000, 7);
  results.large = large.equals(await unary(client, "echo", large));
  results.refused = await unary(client, "refuse", Buffer.from("no: ärger\nhere"));
  results.unknown = (await unary(client, "dream", Buffer.alloc(0)))[0];
  results.deadline = (await unary(client, "wait", Buffer.alloc(0), { deadline: Date.now() + 200 }))[0];
  results.cancelled = (await unary(client, "wait", Buffer.alloc(0), { cancelled: true }))[0];
  const metadata = new grpc.Metadata();
  metadata.add("x-text", "one");
  metadata.add("x-text", "two");
  metadata.add("x-raw-bin", Buffer.from([0, 255, 1]));
  metadata.add("x-raw-bin", Buffer.from([2]));
  results.metadata = (await unary(client, "metadata", Buffer.alloc(0), {}, metadata)).toString();
  results.stream = await stream(client, ["a", "b", "c"].map(Buffer.from.bind(Buffer)));
  results.streams = (await Promise.all(Array.from({ length: 50 }, () => stream(client, [Buffer.from("x")])))).every(
    ([received, code]) => received.join() === "x,1" && code === "OK",
  );
  const many = await Promise.all(Array.from({ length: 1100 }, (_, n) => unary(client, "echo", Buffer.from(`${n}`))));
  results.many = many.every((answer, n) => answer.toString() === `${n}`);
  for (const [name, algorithm] of [["deflate", 1], ["gzip", 2]]) {
    const compressing = connect({ "grpc.default_compression_algorithm": algorithm });
    const content = Buffer.alloc(100_000, 1);
    results[name] = content.equals(await unary(compressing, "echo", content));
    compressing.close();
  }
  client.close();
  console.log(JSON.stringify(results));
}

main();
