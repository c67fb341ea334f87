// Package editor is the table of editors that work in a sandbox through a
// server of their own inside it. It is data and looks at no file.
//
// To add one: a line in the table, a network preset for its downloads
// (internal/egress/preset), the directory of its servers
// (internal/packagecache), and a line in docs/reference/ssh.md.
package editor

import "strings"

// Editor is one editor.
type Editor struct {
	Name  string
	Title string
	parts []string // of the path of its server's program or script
}

// table returns every editor. Visual Studio Code's server also has a program
// code-server, so the order counts.
func table() []Editor {
	return []Editor{
		{"vscode", "Visual Studio Code", []string{"/.vscode-server/", "/.vscode-server-insiders/"}},
		{"cursor", "Cursor", []string{"/.cursor-server/"}},
		{"jetbrains", "JetBrains", []string{"/JetBrains/RemoteDev/"}},
		{"zed", "Zed", []string{"/.zed_server/", "/zed-remote-server"}},
		{"openvscode-server", "openvscode-server", []string{"/openvscode-server"}},
		{"code-server", "code-server", []string{"/code-server"}},
	}
}

// Of returns the editor whose server has this command line: its program, or
// the script that its program reads.
func Of(command string) (Editor, bool) {
	words := strings.Fields(command)
	for _, word := range words[:min(len(words), 2)] {
		for _, editor := range table() {
			for _, part := range editor.parts {
				if _, rest, ok := strings.Cut(word, part); ok && (strings.HasSuffix(part, "/") || rest == "" || rest[0] == '/' || rest[0] == '-') {
					return editor, true
				}
			}
		}
	}
	return Editor{}, false
}

// Named returns the editor with a name.
func Named(name string) (Editor, bool) {
	for _, editor := range table() {
		if editor.Name == name {
			return editor, true
		}
	}
	return Editor{}, false
}
