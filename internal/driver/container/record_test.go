package container_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
)

// The directory of sockets is mounted where the engine takes its path.
func TestMeeting(t *testing.T) {
	for _, test := range []struct {
		record container.Record
		want   string
	}{
		{container.Record{Kind: container.Docker, Address: "unix:///run/docker.sock", Name: "m", State: "/a/b,c"}, "/a/b,c/machines/m"},
		{container.Record{Kind: container.Podman, Address: "unix:///run/podman.sock", Name: "m", State: "/a/b"}, "/a/b/machines/m"},
		{container.Record{Kind: container.Podman, Address: "unix:///run/podman.sock", Name: "m", State: "/a/b,c"}, ""},
		{container.Record{Kind: container.Docker, Address: "tcp://host:2376", Name: "m", State: "/a/b"}, ""},
	} {
		if got := test.record.Meeting(); got != test.want {
			t.Errorf("%+v has %q, want %q", test.record, got, test.want)
		}
	}
}
