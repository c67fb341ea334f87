package git

const machNanos = true
