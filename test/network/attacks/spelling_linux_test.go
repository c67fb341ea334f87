package attacks_test

import (
	"fmt"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// spellingAttacks write a forbidden host in other ways.
func spellingAttacks() []attack {
	return []attack{
		{
			Name: "addresses in other spellings",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				h := outside.Host("numbers.example")
				h.Serve(t, 80, a.web)
				b := h.V4.As4()
				number := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
				s := scene{Arrived: a.arrived, Open: true, Deny: []string{h.V4.String(), h.V6.String(), "0.0.0.0/8"}}
				for _, host := range []string{
					h.V4.String(), fmt.Sprint(number), fmt.Sprintf("%#x", number), fmt.Sprintf("0%o", number),
					fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]), fmt.Sprintf("%#x.%#X.%d.%d", b[0], b[1], b[2], b[3]),
					fmt.Sprintf("%d.%d.%d", b[0], b[1], int(b[2])<<8|int(b[3])), fmt.Sprintf("%d.%d", b[0], number&0xffffff),
					"::ffff:" + h.V4.String(), fmt.Sprintf("::ffff:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3]),
					h.V6.String(), h.V6.StringExpanded(),
				} {
					s.Tries = append(s.Tries, run("tcp", host, "80", "GET / HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n"))
				}
				s.Tries = append(s.Tries, fmt.Sprintf("curl -sS http://%d/", number), fmt.Sprintf("curl -sS -g 'http://[::ffff:%s]/'", h.V4))
				return s
			},
		},
		{
			Name: "names in other spellings",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				h := outside.Host("xn--bse-sna.example") // böse.example
				h.Serve(t, 80, a.web)
				plain := outside.Host("wicked.example")
				plain.Serve(t, 80, a.web)
				outside.Names.Set("below."+plain.Name, plain.V4, plain.V6)
				s := scene{Arrived: a.arrived, Open: true, Deny: []string{"böse.example", "wicked.example", "*.wicked.example"}}
				for _, name := range []string{
					"wicked.example", "WICKED.Example", "wicked.example.", "below.wicked.example", "BELOW.wicked.EXAMPLE.",
					"xn--bse-sna.example", "XN--BSE-SNA.example", "böse.example", "BÖSE.example", "bo\u0308se.example", "böse。example", "ｗicked.example",
				} {
					s.Tries = append(s.Tries, "PYTHONUTF8=1 "+run("tcp", name, "80", "GET / HTTP/1.0\\r\\nHost: "+"x"+"\\r\\n\\r\\n"))
				}
				s.Tries = append(s.Tries, "curl -sS http://nobody@wicked.example/", "curl -sS http://friend.example:80@wicked.example/", "curl -sS http://wicked.example./")
				return s
			},
		},
		{
			Name: "names with bytes that end a string",
			Set: func(t *testing.T, _ *program.Host) scene {
				a := &target{}
				h := outside.Host("*.nul.example")
				h.Serve(t, 80, a.web)
				s := scene{Arrived: a.arrived, Allow: []string{"*.nul.example:80"}}
				for _, name := range []string{`evil\x00.nul.example`, `evil\x00x.nul.example`, `evil/.nul.example`, `evil@.nul.example`, `evil .nul.example`, `evil\xff.nul.example`, `1\x002.nul.example`} {
					s.Tries = append(s.Tries, run("dns", "9.9.9.9", name))
				}
				return s
			},
		},
	}
}
