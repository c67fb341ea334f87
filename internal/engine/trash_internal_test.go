package engine

import (
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
)

func TestRoomForTrash(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, c := range []struct {
		free, total int64
		room        bool
	}{{10 * gib, 1000 * gib, true}, {10*gib - 1, 1000 * gib, false}, {5 * gib, 50 * gib, true}, {5*gib - 1, 50 * gib, false}, {0, 50 * gib, false}} {
		if roomForTrash(c.free, c.total) != c.room {
			t.Errorf("%d of %d free: room %t", c.free, c.total, !c.room)
		}
	}
	if !inodesForTrash(0, 0) || !inodesForTrash(10, 100) || inodesForTrash(9, 100) {
		t.Error("inodes are counted wrongly")
	}
}

func TestTrashKeeps(t *testing.T) {
	t.Parallel()
	for want, retention := range map[time.Duration]config.Retention{
		7 * 24 * time.Hour: {}, time.Hour: {Trash: time.Hour}, 0: {NoTrash: true},
	} {
		if got := trashKeeps(retention); got != want {
			t.Errorf("%+v keeps for %v, want %v", retention, got, want)
		}
	}
}
