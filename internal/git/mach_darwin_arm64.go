package git

const machNanos = false
