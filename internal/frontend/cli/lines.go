package cli

import (
	"bytes"
	"sync"
)

// lineMost is how long a line may be before it is printed in pieces.
const lineMost = 4 << 10

// lines prints the messages of a program inside, beside a command's answer: each
// line once it is complete, without anything that a terminal would obey.
type lines struct {
	console *console

	mu   sync.Mutex
	rest []byte
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, data...)
	for {
		end := bytes.IndexAny(l.rest, "\n\r")
		if end < 0 && len(l.rest) < lineMost {
			return len(data), nil
		}
		if end < 0 {
			end = lineMost - 1
		}
		if err := l.print(l.rest[:end+1]); err != nil {
			return 0, err
		}
		l.rest = l.rest[end+1:]
	}
}

// flush prints a last line that has no end.
func (l *lines) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.print(l.rest)
	l.rest = nil
	return err
}

func (l *lines) print(line []byte) error {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) == 0 {
		return nil
	}
	l.console.progress.clear()
	_, err := l.console.stderr.Write([]byte(clean(string(line)) + "\n"))
	return err
}
