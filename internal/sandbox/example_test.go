package sandbox_test

import (
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// A name is made of what the user typed, and serves as a branch and a host name.
func ExampleSlug() {
	name, err := sandbox.Slug("Fix the login, please!")
	fmt.Println(name, err)
	_, err = sandbox.Slug("***")
	fmt.Println(err != nil)
	// Output:
	// fix-the-login-please <nil>
	// true
}
