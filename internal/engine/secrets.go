package engine

import (
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// secretsAsked says which value a configuration sends to which host.
func secretsAsked(specs []secret.Spec) string {
	var all []string
	for _, spec := range specs {
		hosts := make([]string, len(spec.Hosts))
		for n, host := range spec.Hosts {
			hosts[n] = host.String()
		}
		all = append(all, spec.From.String()+" as "+spec.Name+" to "+strings.Join(hosts, ", "))
	}
	return strings.Join(all, "; ")
}
