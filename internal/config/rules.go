package config

import (
	"strings"
	"unicode"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func checkDefault(v value) []problem {
	if v.text == egress.Deny || v.text == egress.Allow {
		return nil
	}
	return wrong(v, `default = "deny"`, "network.default must be %q or %q, not %q", egress.Deny, egress.Allow, v.text)
}

// readAllowed is readRules for the list of that key, which allows.
func readAllowed(key string, v value) ([]string, []problem) {
	return readList(v, func(text string) (egress.Rule, error) {
		rule, err := egress.ParseAllowed(text)
		if err == nil || !rule.StandsForNames() {
			return rule, err
		}
		return rule, fault.New(fault.Invalid, "%s: %s", key, err.Error()).WithHint("%s", fault.HintOf(err))
	})
}

// readRules gives the canonical text of the rules of a list. A rule that is there
// twice, in any spelling, counts once.
func readRules(v value) ([]string, []problem) { return readList(v, egress.ParseRule) }

func readList(v value, parse func(string) (egress.Rule, error)) ([]string, []problem) {
	rules := make([]string, 0, len(v.items))
	var problems []problem
	for _, item := range v.items {
		rule, err := parse(item.text)
		if err != nil {
			problems = append(problems, wrong(item, printable(fault.HintOf(err)), "%s", err.Error())...)
			continue
		}
		rules = append(rules, rule.String())
	}
	return union(nil, rules), problems
}

// printable drops a hint that repeats bytes of the file that a terminal would act
// on.
func printable(hint string) string {
	if strings.ContainsFunc(hint, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return hint
}
