package landing

import "strings"

// MergeFlags is what must be known about the arguments of git merge. git reads
// them itself; a rehearsal uses those that decide the result.
type MergeFlags struct {
	Resumes bool // --continue
	Leaves  bool // --abort, --quit, and -h: nothing is merged

	content   []string // decide the merge's result
	strategy  bool     // content names one, or options of one
	revisions []string // further branches
	message   bool     // -m or -F
	edit      bool     // --edit or --no-edit
	squash    bool
	makes     bool     // --no-ff: a merge commit even where none is needed
	into      []string // --into-name
	overwrite bool     // --overwrite-ignore
}

// mergeOptions are the long options of git-merge(1) that have a value, and the
// others, which matter for abbreviations.
func mergeOptions() (valued, plain []string) {
	return []string{"message", "file", "into-name", "strategy", "strategy-option", "cleanup"},
		[]string{"commit", "no-commit", "edit", "no-edit", "ff", "no-ff", "ff-only", "gpg-sign", "no-gpg-sign", "log", "no-log",
			"signoff", "no-signoff", "stat", "no-stat", "summary", "no-summary", "squash", "no-squash", "verify", "no-verify",
			"verify-signatures", "no-verify-signatures", "quiet", "verbose", "progress", "no-progress", "autostash", "no-autostash",
			"allow-unrelated-histories", "rerere-autoupdate", "no-rerere-autoupdate", "overwrite-ignore", "no-overwrite-ignore",
			"abort", "continue", "quit", "help"}
}

// ReadMergeFlags reads the arguments as git does: long options may be
// abbreviated, short ones joined.
func ReadMergeFlags(args []string) MergeFlags {
	var f MergeFlags
	for i := 0; i < len(args); i++ {
		arg := args[i]
		next := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch {
		case arg == "--":
			f.revisions = append(f.revisions, args[i+1:]...)
			return f
		case strings.HasPrefix(arg, "--"):
			name, value, given := strings.Cut(arg[2:], "=")
			name, valued := fullOption(name)
			if valued && !given {
				value = next()
			}
			f.long(name, value, arg)
		case strings.HasPrefix(arg, "-") && arg != "-":
			f.short(arg[1:], next)
		default:
			f.revisions = append(f.revisions, arg)
		}
	}
	return f
}

// fullOption completes an abbreviated long option; an unknown or ambiguous one
// stays, for git to refuse.
func fullOption(name string) (full string, valued bool) {
	withValue, plain := mergeOptions()
	matches := 0
	for i, list := range [][]string{withValue, plain} {
		for _, option := range list {
			if option == name {
				return name, i == 0
			}
			if strings.HasPrefix(option, name) {
				full, valued = option, i == 0
				matches++
			}
		}
	}
	if matches != 1 {
		return name, false
	}
	return full, valued
}

func (f *MergeFlags) long(name, value, arg string) {
	switch name {
	case "continue":
		f.Resumes = true
	case "abort", "quit", "help":
		f.Leaves = true
	case "message", "file":
		f.message = true
	case "into-name":
		f.into = []string{"--into-name", value}
	case "strategy", "strategy-option":
		f.strategy = true
		f.content = append(f.content, "--"+name+"="+value)
	case "squash":
		f.squash = true
	case "no-squash":
		f.squash = false
	case "no-ff":
		f.makes = true
		f.content = append(f.content, "--no-ff")
	case "ff", "ff-only":
		f.makes = false
		f.content = append(f.content, "--"+name)
	case "edit", "no-edit":
		f.edit = true
	case "overwrite-ignore":
		f.overwrite = true
	case "cleanup", "commit", "no-commit", "gpg-sign", "no-gpg-sign", "log", "no-log", "signoff", "no-signoff", "stat", "no-stat",
		"summary", "no-summary", "verify", "no-verify", "verify-signatures", "no-verify-signatures", "quiet", "verbose", "progress",
		"no-progress", "autostash", "no-autostash", "rerere-autoupdate", "no-rerere-autoupdate", "no-overwrite-ignore":
	default: // --allow-unrelated-histories, and options of a newer git
		f.content = append(f.content, arg)
	}
}

func (f *MergeFlags) short(letters string, next func() string) {
	for i, letter := range letters {
		value := func() string {
			if rest := letters[i+1:]; rest != "" {
				return rest
			}
			return next()
		}
		switch letter {
		case 'h':
			f.Leaves = true
		case 'm', 'F':
			f.message = true
			value()
			return
		case 's':
			f.strategy = true
			f.content = append(f.content, "--strategy="+value())
			return
		case 'X':
			f.strategy = true
			f.content = append(f.content, "--strategy-option="+value())
			return
		case 'e':
			f.edit = true
		case 'S': // the rest names a key
			return
		}
	}
}
