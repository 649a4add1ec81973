"""The timelines of requests that ask for them."""
