package config

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// maxPorts bounds how many ports one sandbox forwards.
const maxPorts = 64

// validPortName reports whether a name can be part of a host name too:
// http://web.fix-login.localhost:23456/.
func validPortName(name string) bool {
	return service.ValidName(name) && !strings.Contains(name, "_")
}

func readPorts(c *Config, t tree) []problem {
	r := &nestReader{what: "container.ports"}
	add := func(part tree, name string, inside int) {
		variable := service.PortVariable(name)
		switch {
		case !validPortName(name):
			r.wrong(part, "%q is not a name for a port: lower-case letters, digits and inner dashes, 32 at most; a table such as { web = 3000 } gives the number inside", name)
		case slices.ContainsFunc(c.Container.Ports, func(p Port) bool { return service.PortVariable(p.Name) == variable }):
			r.wrong(part, "%q is listed twice", name)
		case len(c.Container.Ports) == maxPorts:
			r.wrong(part, "more than %d ports", maxPorts)
		default:
			c.Container.Ports = append(c.Container.Ports, Port{name, inside})
		}
	}
	switch value := t.value.(type) {
	case []any:
		for _, item := range value {
			if name, ok := item.(string); ok {
				add(t, name, 0)
			} else {
				r.wrong(t, "every element must be a string")
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			part := t.part(name, value[name])
			inside := 0
			if value[name] != int64(0) { // 0: any
				inside = r.port(part)
			}
			add(part, name, inside)
		}
	default:
		r.wrong(t, `must be a list such as ["web", "api"] or a table such as { web = 3000 }`)
	}
	slices.SortFunc(c.Container.Ports, func(a, b Port) int { return strings.Compare(a.Name, b.Name) })
	return r.problems
}

// mergePorts puts ports above others, one by one.
func mergePorts(base, over []Port) []Port {
	merged := slices.Clone(base)
	for _, p := range over {
		merged = slices.DeleteFunc(merged, func(b Port) bool { return b.Name == p.Name })
		merged = append(merged, p)
	}
	slices.SortFunc(merged, func(a, b Port) int { return strings.Compare(a.Name, b.Name) })
	return merged
}

func checkListen(v value) []problem {
	if _, err := netip.ParseAddr(v.text); err != nil {
		return wrong(v, `ports-listen = "0.0.0.0"`, "container.ports-listen must be an address of this machine, not %q", v.text)
	}
	return nil
}
