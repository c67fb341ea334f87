package redteam

import (
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// Class is a kind of attack.
type Class = threat.Class

// Classes lists the classes that have attacks here, in the order of attacks. It
// builds none of them: every start of the program asks for the classes, to
// describe the command.
func Classes() []Class {
	return []Class{
		threat.Files, threat.Git, threat.Networks, threat.Kernel, threat.PID1,
		threat.Secrets, threat.Resources, threat.WayOut, threat.Terminal, threat.Objects,
	}
}

// Attacks returns every attack, class by class.
func Attacks() []Attack {
	all := slices.Concat(fileAttacks(), gitAttacks(), networkAttacks(), kernelAttacks(), processAttacks(), secretAttacks(),
		resourceAttacks(), wayOutAttacks(), terminalAttacks(), objectAttacks())
	for i := range all {
		all[i].Attack, _ = threat.Find(threat.Redteam, all[i].name) // a test checks that each has a row
	}
	order := func(class Class) int {
		return slices.IndexFunc(threat.Classes(), func(t threat.Text) bool { return t.Class == class })
	}
	slices.SortStableFunc(all, func(a, b Attack) int { return order(a.Class) - order(b.Class) })
	return all
}

// Title returns the attack's name, with its variant.
func (a Attack) Title() string { return a.name }
