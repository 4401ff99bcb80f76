package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// sockets are where services listen that run things for whoever asks: through
// them a command could have done outside what it may not do itself. USER is the
// number of the user.
var sockets = []string{
	"/run/docker.sock", "/var/run/docker.sock", "/run/user/USER/docker.sock",
	"/run/podman/podman.sock", "/run/user/USER/podman/podman.sock",
	"/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/buildkit/buildkitd.sock",
	"/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket",
	"/run/libvirt/libvirt-sock", "/run/snapd.socket",
	"/run/dbus/system_bus_socket", "/run/user/USER/bus",
	"/run/systemd/private", "/run/user/USER/systemd/private", "/run/systemd/io.systemd.Manager",
}

// controlSockets are those of them that are here, but for those that may be
// used.
func controlSockets(write []string) (list []string) {
	uid := strconv.Itoa(os.Getuid())
	for _, path := range sockets {
		real, err := filepath.EvalSymlinks(strings.Replace(path, "USER", uid, 1))
		if err != nil {
			continue
		}
		info, err := os.Lstat(real)
		if err == nil && info.Mode()&fs.ModeSocket != 0 && !slices.Contains(write, real) {
			list = append(list, real)
		}
	}
	return outermost(list)
}
