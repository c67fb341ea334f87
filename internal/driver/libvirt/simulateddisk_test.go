package libvirt_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
)

// disk is the content of a simulated disk's file, after the header of a true one.
type disk struct {
	data string
	kept map[string]moment
}

type moment struct {
	state        libvirt.State
	memory, data string
}

const diskHeader = 4 << 16 // what the driver writes

func (d disk) String() string {
	text := "data " + d.data + "\n"
	for _, name := range slices.Sorted(maps.Keys(d.kept)) {
		m := d.kept[name]
		text += fmt.Sprintf("kept %s %s %s %s\n", name, m.state, m.memory, m.data)
	}
	return text
}

func readDisk(path string) (d disk, err error) {
	d.kept = map[string]moment{}
	data, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	for line := range strings.Lines(string(data[min(diskHeader, len(data)):])) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case len(words) == 2:
			d.data = words[1]
		case len(words) == 5:
			d.kept[words[1]] = moment{libvirt.State(words[2]), words[3], words[4]}
		}
	}
	return d, nil
}

func (d disk) write(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data[:min(diskHeader, len(data))], d.String()...), 0o600)
}
