package sandbox

import (
	"os"
	"path/filepath"
	"strings"
)

// sockets are where programs listen that run things for whoever asks, or speak
// for the person: through them a command could have done outside what it may
// not do itself. What is a directory is emptied. A name holds one star at most.
var sockets = []string{
	"/run", "/var/run",
	"/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket", "/var/lib/docker", "/var/lib/libvirt/qemu",
	"/tmp/tmux-*", "/tmp/screens", "/tmp/uscreens", "/tmp/ssh-*", "/tmp/.X11-unix", "/tmp/.ICE-unix", "/tmp/.font-unix", "/tmp/.XIM-unix",
	"/tmp/dbus-*", "/tmp/gpg-*", "/tmp/emacs*", "/tmp/pulse-*", "/tmp/orbit-*", "/tmp/kde-*", "/tmp/ksocket-*", "/tmp/vscode-*", "/tmp/cursor-*",
	"/tmp/com.apple.launchd.*", "/tmp/.s.PGSQL.*", "/tmp/mysql.sock", "/tmp/nvim.*", "/tmp/zellij-*", "/tmp/podman-run-*", "/tmp/containers-user-*",
	"/tmp/keyring-*", "/tmp/fcitx-*", "/tmp/.wine-*", "/tmp/runtime-*", "/tmp/run-*", "/tmp/*.sock", "/tmp/*.socket",
}

// needed is what programs need of the directories that are emptied: where names
// are looked up, and where some systems keep their programs.
var needed = []string{
	"/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", "/run/resolvconf/resolv.conf", "/run/NetworkManager/resolv.conf",
	"/run/connman/resolv.conf", "/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/opengl-driver-32", "/run/host", "/run/lock", "/run/shm",
}

// Listening lists the sockets of this machine by their full paths on which
// programs listen now, as far as the system tells.
func Listening() (list []string) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	const flags, kind, path, accepts, datagrams = 3, 4, 7, "00010000", "0002"
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= path || fields[flags] != accepts && fields[kind] != datagrams {
			continue
		}
		if name := strings.Join(fields[path:], " "); filepath.IsAbs(name) {
			list = append(list, name)
		}
	}
	return list
}

func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}
