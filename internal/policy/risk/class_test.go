package risk_test

import (
	"strings"
	"testing"

	"coder/internal/policy/risk"
)

// TestProgramsThatRunTheirOperandsAreJudgedByThem: whatever stands before a command, its
// risk is found, and nothing that runs one only reads.
func TestProgramsThatRunTheirOperandsAreJudgedByThem(t *testing.T) {
	for _, before := range []string{
		"arch -x86_64", "arch -arm64", "arch -arch x86_64", "arch -d X -e A=1 -32", "setarch x86_64", "setarch -R", "setarch linux32 -R", "linux32", "linux64", "i386", "x86_64 -R",
		"caffeinate", "sandbox-exec -f p", "xcrun", "xcrun --sdk macosx", "chrt 1", "taskset 1", "ionice -c3", "stdbuf -oL", "unbuffer", "busybox", "toybox", "doas", "setpriv",
		"unshare -r", "nsenter -t 1", "chroot /", "eatmydata", "fakeroot", "dbus-run-session", "systemd-run", "watch", "entr", "flock f", "timeout 1", "nice", "nohup", "setsid",
		"env", "command", "time", "xargs", "firejail", "tsocks", "ssh-agent", "numactl -a", "chpst -v", "softlimit -m 1", "setlock f", "cgexec -g x", "hwloc-bind 1",
		"choom -n 1", "uclampset -m 1", "dumb-init", "tini -s", "trickle -s", "cpulimit -l 1", "ifne", "lckdo f", "watchexec -r", "daemonize", "sem -j 2", "catchsegv",
	} {
		for _, command := range []string{"rm x", "sh -c 'rm x'"} {
			r := risk.Analyse(before+" "+command, facts())
			found := false
			for _, f := range r.Findings {
				found = found || strings.Contains(f.Text, "rm removes files")
			}
			if !found || r.ReadOnly {
				t.Errorf("%s %s: %v, only reads: %v", before, command, r.Findings, r.ReadOnly)
			}
		}
		if r := risk.Analyse(before+" unheard-of", facts()); r.ReadOnly {
			t.Errorf("%s unheard-of only reads", before)
		}
	}
	if r := risk.Analyse("arch", facts()); !r.ReadOnly {
		t.Errorf("arch: %s", r.Why)
	}
}

func TestWhatRunsLaterIsARisk(t *testing.T) {
	for _, line := range []string{
		"systemctl enable x", "systemctl --user enable --now x", "systemctl link ./x.service", "systemctl edit x", "loginctl enable-linger", "systemctl preset x",
		"launchctl load x", "launchctl bootstrap gui/501 x", "launchctl enable gui/501/x", "crontab f", "at now", "batch", "update-rc.d x defaults", "chkconfig x on", "chkconfig --add x",
		"rc-update add x", "brew services start x", "pm2 startup", "schtasks /create x",
	} {
		if r := risk.Analyse(line, facts()); r.Level < risk.Approve {
			t.Errorf("%s: %v", line, r.Level)
		}
	}
	for _, line := range []string{"systemctl status x", "systemctl list-units", "launchctl list", "brew services list", "crontab -l"} {
		if r := risk.Analyse(line, facts()); r.Level > risk.None {
			t.Errorf("%s: %v", line, r.Findings)
		}
	}
}

// TestEveryWayToOpenAFileForWritingIsAWrite: what may lose its content is overwritten.
func TestEveryWayToOpenAFileForWritingIsAWrite(t *testing.T) {
	f := facts()
	f.Exists = func(path string) bool { return strings.HasSuffix(path, "exists.txt") }
	for redirect, loses := range map[string]bool{
		"1<>": true, "<>": true, "3<>": true, "{fd}<>": true, ">": true, ">|": true, "&>": true, ">&": true, "2>": true, ">>": false, "&>>": false, "2>>": false,
	} {
		r := risk.Analyse("echo x "+redirect+" exists.txt", f)
		if len(r.Writes) == 0 || r.ReadOnly || loses != (r.Level == risk.Approve) {
			t.Errorf("%s: writes %v, %v", redirect, r.Writes, r.Findings)
		}
	}
}
