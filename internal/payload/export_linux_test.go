package payload

// Functions that are tested directly.
var (
	Executable = executable
	Unpack     = unpack
	Verified   = verified
)
