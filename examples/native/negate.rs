// y = -x, in Rust: the structs of naiad_custom.h that it needs, and its functions.
use std::ffi::{c_char, c_int, c_void};

#[repr(C)]
pub struct Tensor {
    name: *const c_char,
    datatype: *const c_char,
    dims: *const i64,
    ndims: u64,
    content: *const c_void,
    byte_size: u64,
}
#[repr(C)]
pub struct Request {
    id: *const c_char,
    parameters: *const c_char,
    inputs: *const Tensor,
    input_count: u64,
    outputs: *const *const c_char,
    output_count: u64,
    batch_size: u64,
}
#[repr(C)]
pub struct Batch {
    requests: *const Request,
    request_count: u64,
    batch_size: u64,
    output: extern "C" fn(
        *mut Batch,
        i64,
        *const c_char,
        *const c_char,
        *const i64,
        u64,
        u64,
    ) -> *mut c_void,
    fail: extern "C" fn(*mut Batch, i64, c_int, *const c_char) -> c_int,
}

#[no_mangle]
pub extern "C" fn naiad_abi() -> u64 {
    1 << 32 | 248
}
#[no_mangle]
pub extern "C" fn naiad_initialize(_setup: *const c_void, _instance: *mut *mut c_void) -> c_int {
    0
}
#[no_mangle]
pub extern "C" fn naiad_finalize(_instance: *mut c_void) {}
#[no_mangle]
pub extern "C" fn naiad_execute(_instance: *mut c_void, batch: *mut Batch) -> c_int {
    let b = unsafe { &*batch };
    for (index, request) in
        unsafe { std::slice::from_raw_parts(b.requests, b.request_count as usize) }
            .iter()
            .enumerate()
    {
        let x = unsafe { &*request.inputs };
        let y = (b.output)(
            batch,
            index as i64,
            c"y".as_ptr(),
            c"FP32".as_ptr(),
            x.dims,
            x.ndims,
            x.byte_size,
        ) as *mut f32;
        for at in 0..(if y.is_null() {
            0
        } else {
            x.byte_size as usize / 4
        }) {
            unsafe { *y.add(at) = -*(x.content as *const f32).add(at) };
        }
    }
    0
}
