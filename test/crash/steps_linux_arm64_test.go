package crash_test

// olderSteps are none: this architecture never had them.
func olderSteps() []uint64 { return nil }
