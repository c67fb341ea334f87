package opensshsuite_test

import "regexp"

// explained is a justified complaint of a script, and its reason.
type explained struct {
	complaint *regexp.Regexp
	why       string
	times     int // that it comes; 0 means any number but none
}

func complaint(pattern, why string) explained {
	return explained{complaint: regexp.MustCompile("^(?:" + pattern + ")$"), why: why}
}

// only requires a number of them.
func (e explained) only(times int) explained {
	e.times = times
	return e
}

const (
	listed    = "only the variables enter that exec has, by name"
	noPort    = "there is no port on which a sandbox listens for ssh"
	noReverse = "-R is refused: no rule of the network would see it"
	noSockets = "sockets are not forwarded"
	inside    = "forwarding reaches loopback inside, where the script's server is not"
	ownUser   = "commands run as the sandbox's own user"
	theirs    = "it sets an option of sshd"
)

// applies are the scripts that run, with the complaints to expect.
var applies = map[string][]explained{
	"connect": {
		complaint(`proxy connect: ssh proxycommand connect failed`, noPort),
	},
	"proxy-connect": {
		complaint(`plain username comp=(no|yes): bad SSH_CONNECTION comp=(no|yes): *`, "no address connects: SSH_CONNECTION is not set"),
		complaint(`username with style: ssh proxyconnect failed`, ownUser),
	},
	"connect-uri":   {},
	"proto-version": {},
	"proto-mismatch": {
		complaint(`sshd prints SSH-2.0-litterbox\s*: sshd prints SSH-2.0-litterbox\s+but accepts version\s*`, "the version is refused with another exit code than that of sshd"),
	},
	"exit-status":        {},
	"exit-status-signal": {},
	"envpass": {
		complaint(`.*(accept single env|accept multiple env|setenv, accept|setenv, first match wins): environment not found`, listed),
		complaint(`.*server setenv wins: environment not found`, theirs),
	},
	"transfer": {},
	"rekey": {
		// Of four sizes and two times. Where the client sets the limit, it must come.
		complaint(`0 rekeying\(s\): no rekeying occurred`, theirs).only(6),
		complaint(`.*: rekeylimit size: expected 16 bytes got *`, theirs),
	},
	"stderr-data":      {},
	"stderr-after-eof": {},
	"broken-pipe":      {},
	"try-ciphers":      {},
	"yes-head":         {},
	"scp":              {},
	"scp3":             {},
	"scp-uri":          {},
	"sftp":             {},
	"sftp-cmds": {
		complaint(`sftp commands: cp: created file is not equal after cp`, "pkg/sftp has no copy-data: files are copied inside by a command"),
	},
	"sftp-badcmds": {},
	"sftp-batch":   {},
	"sftp-glob":    {},
	"sftp-uri":     {},
	"multiplex": {
		complaint(`(setenv|env passing) over multiplexed connection: environment not found`, listed),
		complaint(`forward over TCP/IP and check result: ssh: corrupted copy of .*`, inside),
		complaint(`forward over UNIX and check result: ssh: corrupted copy of .*`, noSockets),
		complaint(`.*cmd forward local \(TCP\): local forward port still listening`, noPort),
		complaint(`.*cmd forward local \(UNIX\): connect to local forward path failed`, inside),
		complaint(`.*cmd forward remote \(TCP\): remote forward port still listening`, noPort),
		complaint(`.*cmd forward remote \((TCP|UNIX)\): (request remote forward failed|cancel remote forward failed|connect to remote forwarded path failed)`, noReverse),
	},
	"localcommand": {},
	"kextype":      {},
	"host-expand":  {},
	"knownhosts":   {},
}

const (
	clientOnly = "it tries programs of the client alone"
	noKeys     = "no key logs in to a sandbox: who starts the program is who is served"
	options    = "it tries options of sshd"
)

// without are the scripts that do not apply, with the reason.
var without = map[string]string{
	"sshfp-connect":      "no DNS holds the host key",
	"connect-privsep":    options,
	"banner":             options,
	"dhgex":              "there is no group exchange: x/crypto/ssh has fixed groups",
	"login-timeout":      options,
	"agent":              noKeys,
	"agent-getpeereid":   clientOnly,
	"agent-timeout":      clientOnly,
	"agent-ptrace":       clientOnly,
	"agent-subprocess":   clientOnly,
	"keyscan":            noPort,
	"keygen-change":      clientOnly,
	"keygen-comment":     clientOnly,
	"keygen-convert":     clientOnly,
	"keygen-knownhosts":  clientOnly,
	"keygen-moduli":      clientOnly,
	"keygen-sshfp":       clientOnly,
	"key-options":        noKeys,
	"sftp-chroot":        options,
	"sftp-perm":          "it tries options of OpenSSH's sftp-server",
	"reconfigure":        options,
	"dynamic-forward":    inside,
	"forwarding":         inside,
	"reexec":             options,
	"brokenkeys":         noKeys,
	"sshcfgparse":        clientOnly,
	"cfgparse":           options,
	"cfgmatch":           options,
	"cfgmatchlisten":     options,
	"percent":            clientOnly,
	"addrmatch":          options,
	"forcecommand":       options,
	"portnum":            noPort,
	"keytype":            noKeys,
	"cert-hostkey":       "the host key has no certificate: it lies beside the client's known_hosts",
	"cert-userkey":       noKeys,
	"keys-command":       noKeys,
	"forward-control":    options,
	"integrity":          "it damages what a server sends, to try the client",
	"krl":                clientOnly,
	"multipubkey":        noKeys,
	"limit-keytype":      noKeys,
	"hostkey-agent":      options,
	"hostkey-rotate":     "there is one host key, which is not rotated",
	"principals-command": noKeys,
	"cert-file":          noKeys,
	"cfginclude":         clientOnly,
	"servcfginclude":     options,
	"allow-deny-users":   options,
	"authinfo":           noKeys,
	"sshsig":             clientOnly,
	"knownhosts-command": clientOnly,
	"agent-restrict":     noKeys,
	"hostbased":          noKeys,
	"channel-timeout":    options,
	"connection-timeout": options,
}
