package egress

import (
	"slices"
	"strconv"
	"strings"
)

// named returns the rule as messages show it.
func (r Rule) named() string {
	if r.From != "" {
		return r.String() + " (" + r.From + ")"
	}
	return r.String()
}

// everyPort reports whether the rule, as a deny rule, covers every port.
func (r Rule) everyPort() bool { return r.anyPort || r.port == 0 }

func (r Rule) matchesHost(host string) bool {
	if r.host == "" {
		return false
	}
	if !r.wildcard {
		return host == r.host
	}
	below, ok := strings.CutSuffix(host, "."+r.host)
	return ok && below != ""
}

// matchesPort is for allow rules: without a port they mean the web's.
func (r Rule) matchesPort(port uint16) bool {
	switch {
	case r.anyPort:
		return true
	case r.port != 0:
		return port == r.port
	case r.protocol == HTTP:
		return port == 80
	case r.protocol == HTTPS:
		return port == 443
	}
	return webPort(port)
}

// admits reports whether an allow rule whose host and port match covers what the
// connection carries.
func (r Rule) admits(t Target) bool {
	switch t.Protocol {
	case UDP:
		return r.protocol == UDP
	case TCP:
		return r.protocol == TCP || r.protocol == "" && (r.network.IsValid() || !webPort(t.Port))
	case HTTP, HTTPS:
		switch r.protocol {
		case "", TCP:
			return true
		case t.Protocol:
			return r.coversRequest(t)
		}
		return false
	}
	return r.protocol != UDP
}

// coversRequest applies an allow rule's methods and path; the unknown is not covered.
func (r Rule) coversRequest(t Target) bool {
	if len(r.methods) > 0 && !slices.Contains(r.methods, t.Method) {
		return false
	}
	if r.path == "" {
		return true
	}
	path, ok := cleanPath(t.Path)
	return ok && underPath(r.path, path)
}

// constrained reports whether the rule looks at single requests.
func (r Rule) constrained() bool { return len(r.methods) > 0 || r.path != "" }

// denies reports whether a deny rule covers t. When in doubt, it does.
func (r Rule) denies(t Target) bool {
	if r.preset != "" {
		return true // not expanded: what it covers is unknown
	}
	byHost := t.Host != "" && r.matchesHost(t.Host)
	byAddr := t.Addr.IsValid() && r.network.IsValid() && (r.network.Contains(t.Addr) || slices.ContainsFunc(embedded(t.Addr), r.network.Contains))
	if !byHost && !byAddr || !r.everyPort() && r.port != t.Port {
		return false
	}
	switch r.protocol {
	case "":
		return true
	case UDP:
		return t.Protocol == UDP
	case TCP:
		return t.Protocol != UDP
	}
	switch t.Protocol {
	case TCP: // bytes that were not looked into may be anything
		return true
	case r.protocol:
		return r.forbidsRequest(t)
	}
	return false
}

// forbidsRequest applies a deny rule's methods and path; the unknown may be
// forbidden. Servers differ about the case of methods, so case does not count.
func (r Rule) forbidsRequest(t Target) bool {
	if len(r.methods) > 0 && t.Method != "" && !slices.Contains(r.methods, upperASCII(t.Method)) {
		return false
	}
	if r.path == "" || t.Path == "" {
		return true
	}
	path, ok := cleanPath(t.Path)
	return !ok || underPath(r.path, path)
}

// lacks says why an allow rule for the right host does not admit t.
func (r Rule) lacks(t Target) string {
	name := r.named()
	switch {
	case !r.matchesPort(t.Port):
		return "the rule " + name + " does not cover port " + strconv.Itoa(int(t.Port))
	case t.Protocol == UDP:
		return "the rule " + name + " does not cover UDP; allow udp://" + t.authority() + " if that is intended"
	case t.Protocol == TCP:
		return "it is neither TLS nor HTTP; allow tcp://" + t.authority() + " if that is intended"
	case r.protocol != t.Protocol && r.protocol != "":
		return "the rule " + name + " covers " + r.protocol + ", not " + t.Protocol
	case t.Protocol == HTTPS && t.Method == "":
		return "the rule " + name + " looks at requests, and TLS hides them"
	}
	return "the rule " + name + " does not cover the request " + shorten(t.Method+" "+t.Path)
}
