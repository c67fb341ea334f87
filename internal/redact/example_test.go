package redact_test

import (
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// Known values and texts that look like secrets are removed before recording.
func ExampleText() {
	fmt.Println(redact.Text("PASSWORD=hunter22 psql; echo swordfish", "swordfish"))
	// Output:
	// PASSWORD=[redacted] psql; echo [redacted]
}
