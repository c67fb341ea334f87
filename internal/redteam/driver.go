package redteam

// tier is how to request a driver.
type tier struct {
	name string
	env  []string // makes the program use it
	args []string // of create
}

func tiers() []tier {
	return []tier{
		{name: "namespace"},
		{name: "landlock", env: []string{"LITTERBOX_TIER=degraded"}, args: []string{"--allow-degraded"}},
	}
}

// Drivers lists the drivers that can be attacked, the default one first.
func Drivers() []string {
	var names []string
	for _, t := range tiers() {
		names = append(names, t.name)
	}
	return names
}
