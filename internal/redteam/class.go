package redteam

import "slices"

// Class is a kind of attack.
type Class string

// The classes.
const (
	Files     Class = "files"
	Git       Class = "git"
	Network   Class = "network"
	Kernel    Class = "kernel"
	PID1      Class = "pid1"
	Secrets   Class = "secrets"
	Resources Class = "resources"
	WayOut    Class = "way-out"
	Terminal  Class = "terminal"
	Objects   Class = "objects"
)

// classText is what the page says of a class.
type classText struct {
	class Class
	about string
	links []link // public references
}

type link struct{ name, url, what string }

// Classes lists the classes in the order of attacks.
func Classes() []Class {
	var all []Class
	for _, text := range classTexts() {
		all = append(all, text.class)
	}
	return all
}

// Attacks is every attack, class by class.
func Attacks() []Attack {
	return slices.Concat(fileAttacks(), gitAttacks(), networkAttacks(), kernelAttacks(), processAttacks(), secretAttacks(),
		resourceAttacks(), wayOutAttacks(), terminalAttacks(), objectAttacks())
}
