package egress_test

import (
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// A policy decides only from its input: it looks nothing up and opens nothing.
func ExamplePolicy_Decide() {
	rule, err := egress.ParseRule("*.example.com:443")
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := egress.Policy{Allow: []egress.Rule{rule}}
	for _, host := range []string{"api.example.com", "example.org"} {
		decision := policy.Decide(egress.Target{Host: host, Port: 443})
		fmt.Println(host, decision.Allowed)
	}
	// Output:
	// api.example.com true
	// example.org false
}
