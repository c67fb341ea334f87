//go:build linux

package seccomp

import (
	"fmt"
	"strings"
)

// Listing is the policy of one architecture as text, a line for every number
// that has a name: the first condition of a line that holds decides. It is for
// readers and for the golden files, which show in a review what a change to the
// rules or an update of the tables permits.
func Listing(arch Arch) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, AUDIT_ARCH %#x; any other architecture: kill\n", arch.Name, arch.Audit)
	for _, variant := range []struct {
		name string
		opts Options
	}{{"nested false", Options{}}, {"nested true", Options{Nested: true}}, {"install", Options{Install: true}}} {
		program, err := Compile(arch, Sandbox(variant.opts))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s: %d instructions\n", variant.name, len(program))
	}
	b.WriteString("[n]: not when nested; [i]: only when nested; [a]: asked about when installing\n")
	for _, rule := range pretended() {
		fmt.Fprintf(&b, "when installing, %s: %s\n", strings.Join(rule.Calls, ", "), rule.Verdict)
	}
	b.WriteByte('\n')
	byName := map[string][]Rule{}
	for _, rule := range table() {
		for _, name := range rule.Calls {
			byName[name] = append(byName[name], rule)
		}
	}
	for number, name := range arch.Calls {
		if name == "" {
			if number == 0 || arch.Calls[number-1] != "" {
				fmt.Fprintf(&b, "%4d… unknown: ENOSYS\n", number)
			}
			continue
		}
		fmt.Fprintf(&b, "%4d %s: %s\n", number, name, describe(byName[name]))
	}
	fmt.Fprintf(&b, "%4d… unknown: ENOSYS\n", len(arch.Calls))
	if arch.Alien != 0 {
		fmt.Fprintf(&b, "any number & %#x: kill\n", arch.Alien)
	}
	fmt.Fprintf(&b, "%#x (skipped by a tracer): allow\n", uint32(skipped))
	for _, list := range []struct {
		name     string
		requests []Request
	}{{"ioctl", ioctls()}, {"ioctl, only when nested", innerIoctls()}, {"fcntl", fcntls()}} {
		fmt.Fprintf(&b, "\n%s:\n", list.name)
		for _, request := range list.requests {
			fmt.Fprintf(&b, "%#10x %s: %s\n", request.Number, request.Name, request.Why)
		}
	}
	return b.String(), nil
}

func describe(rules []Rule) string {
	var parts []string
	for _, rule := range rules {
		var tests []string
		for _, test := range rule.When {
			tests = append(tests, test.String())
		}
		part := rule.Verdict.String()
		if len(tests) > 0 {
			part = "if " + strings.Join(tests, " and ") + " " + part
		}
		if rule.Nested {
			part += " [n]"
		}
		if rule.Inner {
			part += " [i]"
		}
		if rule.Asked {
			part += " [a]"
		}
		parts = append(parts, part)
		if len(rule.When) == 0 && !rule.Nested && !rule.Inner {
			return strings.Join(parts, "; ")
		}
	}
	return strings.Join(append(parts, "allow"), "; ")
}

func (t Test) String() string {
	var values []string
	for _, value := range t.Values {
		values = append(values, fmt.Sprintf("%#x", value))
	}
	relation := "in"
	if t.Not {
		relation = "not in"
	}
	return fmt.Sprintf("arg%d & %#x %s {%s}", t.Arg, t.Mask, relation, strings.Join(values, " "))
}
