package config_test

import (
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30d": 30 * 24 * time.Hour, "1.5d": 36 * time.Hour, "2w": 14 * 24 * time.Hour, "90m": 90 * time.Minute,
		"": 0, "d": 0, "-1d": 0, "0h": 0, "30": 0, "9999999999w": 0, "1e9d": 0,
	} {
		got, err := config.Parse("f", []byte("retention.max-age = '"+text+"'"))
		if (err != nil) != (want == 0) || got.Retention.MaxAge != want {
			t.Errorf("max-age %q: got %v, %v, want %v", text, got.Retention.MaxAge, err, want)
		}
	}
	for text, want := range map[string]int64{
		"20GiB": 20 << 30, "1 MiB": 1 << 20, "512K": 512 << 10, "0.5T": 1 << 39, "100": 100, "100B": 100,
		"": 0, "GiB": 0, "-1G": 0, "1XB": 0, "1GG": 0, "1BiG": 0, "99999999T": 0,
	} {
		got, err := config.Parse("f", []byte("retention.max-disk = '"+text+"'"))
		if (err != nil) != (want == 0) || got.Retention.MaxDisk != want {
			t.Errorf("max-disk %q: got %v, %v, want %v", text, got.Retention.MaxDisk, err, want)
		}
	}
	for text, good := range map[string]bool{"0": true, "7": true, "-1": false, "1.5": false, "'7'": false} {
		if _, err := config.Parse("f", []byte("retention.keep-last = "+text)); (err == nil) != good {
			t.Errorf("keep-last %s: %v", text, err)
		}
	}
	for text, want := range map[string]config.Retention{
		"7d": {Trash: 7 * 24 * time.Hour}, "12h": {Trash: 12 * time.Hour}, "off": {NoTrash: true}, "": {}, "0": {}, "-1d": {}, "on": {},
	} {
		got, err := config.Parse("f", []byte("retention.trash = '"+text+"'"))
		if good := want.NoTrash || want.Trash > 0; (err == nil) != good || got.Retention.Trash != want.Trash || got.Retention.NoTrash != want.NoTrash {
			t.Errorf("trash %q: got %+v, %v, want %+v", text, got.Retention, err, want)
		}
	}
	if _, err := config.Parse("f", []byte("retention.states = ['running']")); err == nil {
		t.Error("a running sandbox could be cleared away")
	}
}
