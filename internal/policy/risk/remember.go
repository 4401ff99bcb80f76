package risk

import (
	"maps"
	"slices"
	"strings"

	"coder/internal/policy"
)

// neverRemembered reports whether a command's name alone never allows it: its words alone decide what it does.
func neverRemembered(c Command) bool {
	name := programFamily(programName(c.Name))
	_, wraps := wrappers()[name]
	_, harms := dangerousCommands()[name]
	return c.Name == "" || c.IsWrapper || c.isLocal || wraps || harms || shellNames.has(name) ||
		interpreterNames.has(name) || commandRunners.has(name)
}

// commandRunners are the other commands that run their arguments.
var commandRunners = wordList("git env command exec eval xargs gxargs parallel trap alias source . hash enable su runuser sg flock script watch ssh at batch " +
	"awk gawk mawk nawk expect screen tmux vim vi nvim gvim view vimdiff ed ex emacs emacsclient nsenter firejail proxychains torsocks rsh systemctl loginctl " +
	"bwrap gdb gdbserver lldb cgdb rr perf dtrace bpftrace heaptrack systemd-nspawn start-stop-daemon dbus-launch xterm ip ifconfig route service sysctl " +
	"kubectl helm terraform tofu pulumi docker docker-compose podman nerdctl buildah oc lxc incus virsh vagrant ansible ansible-playbook minikube " +
	"sqlite3 psql mysql mongosh redis-cli distcc ccache socat nc ncat netcat proot dlv")

// MatchPattern reports whether a pattern matches a whole simple command.
// "*" matches any text; " *" at the end also matches nothing at all.
func MatchPattern(pattern string, c Command) bool {
	if c.Name == "" {
		return pattern == "*"
	}
	text := c.String()
	if bare, ok := strings.CutSuffix(pattern, " *"); ok && matchStars(bare, text) {
		return true
	}
	return matchStars(pattern, text)
}

// matchStars compares the pieces between the stars from left to right.
func matchStars(pattern, text string) bool {
	pieces := strings.Split(pattern, "*")
	if len(pieces) == 1 {
		return pattern == text
	}
	first, last := pieces[0], pieces[len(pieces)-1]
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for _, p := range pieces[1 : len(pieces)-1] {
		if _, text, ok = strings.Cut(text, p); !ok {
			return false
		}
	}
	return strings.HasSuffix(text, last)
}

// Patterns maps command patterns to verdicts. The longest matching pattern decides; "*" is the baseline.
type Patterns map[string]policy.Verdict

// Verdict returns the strictest verdict on any command of the line, and its pattern. A pattern that
// allows applies only to its own command: if the line also substitutes, redirects, sets variables of
// programs or is not understood, the baseline decides. A pattern that denies also applies to an unknown
// command, which may be the denied one. It fails if a command matches no pattern at all.
func (ps Patterns) Verdict(r Report) (v policy.Verdict, pattern string, ok bool) {
	if r.Unknown {
		for _, p := range slices.Sorted(maps.Keys(ps)) {
			if ps[p] == policy.Deny {
				return policy.Deny, p, true
			}
		}
	}
	if len(r.Simple) == 0 {
		v, ok = ps["*"]
		return v, "*", ok
	}
	vouched := !r.Substituted && !r.Unknown && !r.Redirected && len(r.SetVars) == 0
	v = policy.Allow
	for _, c := range r.Simple {
		p, found := ps.longest(func(p string) bool { return MatchPattern(p, c) })
		q, ok := ps.longest(func(p string) bool {
			return p != "*" && ps[p] != policy.Allow && !MatchPattern(p, c) &&
				c.Matches(p)
		})
		if ok && (!found || ps[q] < ps[p]) {
			p, found = q, true // another spelling of what a stricter pattern names
		}
		if found && ps[p] == policy.Allow && !vouched {
			_, found = ps["*"]
			p = "*"
		}
		if !found {
			return policy.Deny, "", false
		}
		if ps[p] < v || pattern == "" {
			v, pattern = ps[p], p
		}
	}
	return v, pattern, true
}

// Matches reports whether a pattern matches a command in any spelling: with the
// path of its program, or with git options before the subcommand. It is for
// restrictive patterns; an allowing pattern must match the command as written.
func (c Command) Matches(pattern string) bool {
	if MatchPattern(pattern, c) {
		return true
	}
	plain := c
	plain.Name = programName(c.Name)
	if plain.Name == "git" {
		args := c.Args
		for len(args) > 0 && strings.HasPrefix(args[0], "-") {
			n := 1
			if gitValueOptions.has(args[0]) {
				n = min(2, len(args))
			}
			args = args[n:]
		}
		plain.Args = args
	}
	return MatchPattern(pattern, plain)
}

// gitValueOptions are git's options before the subcommand that take the next word as their value.
var gitValueOptions = wordList("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source")

// longest returns the longest applicable pattern, and among equally long ones the strictest.
func (ps Patterns) longest(applies func(pattern string) bool) (best string, ok bool) {
	for p, v := range ps {
		longer := len(p) > len(best) || len(p) == len(best) && v < ps[best]
		if (!ok || longer) && applies(p) {
			best, ok = p, true
		}
	}
	return best, ok
}
