package service

import (
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Order lists the names so that each comes after its needs; otherwise in
// alphabetical order. Unknown needs are left out. A circle is fault.Invalid and
// names its members.
func Order(specs []Spec) ([]string, error) {
	byName := map[string]Spec{}
	var names []string
	for _, s := range specs {
		byName[s.Name] = s
		names = append(names, s.Name)
	}
	slices.Sort(names)
	var order, path []string
	done := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if at := slices.Index(path, name); at >= 0 {
			return fault.New(fault.Invalid, "cannot order the services: %s", strings.Join(append(path[at:], name), " needs ")).
				WithHint("take one of these out of a list called needs")
		}
		spec, known := byName[name]
		if done[name] || !known {
			return nil
		}
		path = append(path, name)
		for _, need := range slices.Sorted(slices.Values(spec.Needs)) {
			if err := visit(need); err != nil {
				return err
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		order = append(order, name)
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// WithNeeds lists name and everything that it needs, directly or not, in the
// order of starting.
func WithNeeds(specs []Spec, name string) []string {
	wanted := map[string]bool{}
	var want func(name string)
	want = func(name string) {
		if wanted[name] {
			return
		}
		wanted[name] = true
		for _, s := range specs {
			if s.Name == name {
				for _, need := range s.Needs {
					want(need)
				}
			}
		}
	}
	want(name)
	order, err := Order(specs)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(order, func(n string) bool { return !wanted[n] })
}
