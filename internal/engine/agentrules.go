package engine

import (
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// runRules are the rules that a client needs for every user: its preset, its own
// rules, and the hosts of the secrets that it requires.
func runRules(client profile.Profile, specs []secret.Spec) (rules []string) {
	if client.Preset != "" {
		rules = append(rules, client.Preset)
	}
	rules = append(rules, client.Allow...)
	for _, spec := range specs {
		if !slices.Contains(client.Secrets, spec.Name) {
			continue
		}
		for _, host := range spec.Hosts {
			rule := host.Rule()
			if name, isDefault := strings.CutSuffix(rule, ":443"); !isDefault || !slices.Contains(rules, name) {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// providerRules are the hosts of the providers that a client of several has a key
// or a login of: its preset names none of them.
func providerRules(client profile.Profile, hasKey func(variable string) bool, logins []hostLogin) (rules []string) {
	if !client.Several {
		return nil
	}
	for _, key := range client.Keys {
		if hasKey(key.Variable) {
			rules = append(rules, key.Hosts...)
		}
	}
	for _, login := range logins {
		for _, token := range login.Tokens {
			for _, route := range token.To {
				rules = append(rules, route.Host)
			}
		}
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}
