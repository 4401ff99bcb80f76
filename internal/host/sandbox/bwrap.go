package sandbox

import "slices"

// bwrapArgs are the arguments of bwrap that lay out the file system, up to the
// command. The process table is the command's own and ends with it.
func bwrapArgs(p places) []string {
	args := []string{"--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc", "--die-with-parent"}
	if !p.network {
		args = append(args, "--unshare-net")
	}
	for _, path := range p.write {
		args = append(args, bindFlag(path), path, path)
	}
	for _, path := range p.pins() {
		args = append(args, "--bind", path, path)
	}
	for _, path := range p.protect {
		args = append(args, "--ro-bind", path, path)
	}
	for _, path := range p.hide {
		args = append(args, "--ro-bind", "/dev/null", path)
	}
	for _, path := range p.empty {
		args = append(args, "--tmpfs", path)
	}
	for _, path := range p.show {
		if slices.Contains(p.write, path) {
			args = append(args, bindFlag(path), path, path)
		} else {
			args = append(args, "--ro-bind", path, path)
		}
	}
	for _, path := range p.empty {
		args = append(args, "--remount-ro", path)
	}
	return append(args, "--")
}

// bindFlag lets devices that may be used be used.
func bindFlag(path string) string {
	if within(path, "/dev") {
		return "--dev-bind"
	}
	return "--bind"
}
