package seccomp_test

// foreignCall has nothing to do: AArch64 code cannot enter the kernel as
// AArch32, only a 32-bit program can.
func foreignCall(bool) int { return 123 }
