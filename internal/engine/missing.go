package engine

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Exit codes of a command that was not found (sh(1)), and of apt-get that failed.
const (
	notFound  = 127
	aptFailed = 100
)

// aptInstalls finds what a command line has apt install.
var aptInstalls = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bapt(?:-get|itude)?\s(?:[^;&|]*\s)?install\s+([^;&|<>\n]*)`)
})

// missingNote is what a human types to get a program that a command did not find;
// "" is nothing. Agents read it, too, and ask for it.
func missingNote(p *place, request ExecRequest, exit wire.Exit) string {
	if exit.Code != notFound && exit.Code != aptFailed || exit.Signal != "" || p.canInstall() != nil {
		return ""
	}
	line := request.Command
	if line == "" {
		line = strings.Join(request.Argv, " ")
	}
	if found := aptInstalls().FindStringSubmatch(line); found != nil {
		packages := slices.DeleteFunc(strings.Fields(found[1]), func(one string) bool { return !config.IsPackage(one) })
		if len(packages) > 0 {
			return "nothing was installed; a human can install it from outside, whatever the network rules of the sandbox: litterbox install " +
				p.record.Name + " " + strings.Join(packages, " ")
		}
	}
	if exit.Code == notFound && !slices.Contains([]string{"shell", "setup", "hook"}, request.Kind) {
		return "a program is missing inside; if a package of the operating system has it, a human can install it from outside: litterbox install " + p.record.Name + " PACKAGE"
	}
	return ""
}
