package template

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"
)

// devContainer reads a dev container definition (containers.dev, "Dev Container
// metadata reference").
func (l *looker) devContainer() {
	file := l.has(".devcontainer/devcontainer.json", ".devcontainer.json")
	if file == "" {
		return
	}
	text, ok := l.read(file)
	if !ok {
		return
	}
	plainJSON, err := hujson.Standardize([]byte(text))
	var definition struct {
		Image             string                     `json:"image"`
		ForwardPorts      []json.RawMessage          `json:"forwardPorts"`
		PostCreateCommand json.RawMessage            `json:"postCreateCommand"`
		ContainerEnv      map[string]string          `json:"containerEnv"`
		Build             json.RawMessage            `json:"build"`
		Features          map[string]json.RawMessage `json:"features"`
	}
	if err == nil {
		err = json.Unmarshal(plainJSON, &definition)
	}
	if err != nil {
		l.note(file + " cannot be read: " + err.Error())
		return
	}
	l.found(file + ": a dev container")
	if image := definition.Image; image != "" && !strings.ContainsAny(image, "$ \t\n\"") {
		l.Image = image
	}
	if len(definition.Build) > 0 {
		l.note(file + " builds an image: container.base-image can name one that was built")
	}
	for _, raw := range definition.ForwardPorts {
		var number int
		if json.Unmarshal(raw, &number) == nil && number > 0 && number < 65536 {
			l.Ports = append(l.Ports, port{fmt.Sprintf("port-%d", number), number})
		}
	}
	for key, value := range definition.ContainerEnv {
		if strings.Contains(value, "${") {
			l.note("containerEnv." + key + " takes a value of the host, which does not enter by itself")
			continue
		}
		if l.Env == nil {
			l.Env = map[string]string{}
		}
		l.Env[key] = value
	}
	if command := shellCommand(definition.PostCreateCommand); command != "" {
		l.Setup = append(l.Setup, setup{command, "postCreateCommand of " + file})
	}
}

// shellCommand returns a command of a dev container, a string or a list.
func shellCommand(raw json.RawMessage) string {
	var line string
	if json.Unmarshal(raw, &line) == nil {
		return line
	}
	var words []string
	if json.Unmarshal(raw, &words) != nil {
		return ""
	}
	for n, word := range words {
		words[n] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
