package shell

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dieWithUs has the system kill the shell when we die without a chance to.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// living lists the processes of a session that have not ended yet. A shell may
// put its children into groups of their own (set -m), so the group is not
// enough to go by.
func living(session int) (list []member) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if m, in, alive := status(name); alive && in == session {
			list = append(list, m)
		}
	}
	return list
}

// status reads a process's line: number (name) state parent group session. The
// name may hold anything, so we count from its last bracket.
func status(pid string) (m member, session int, alive bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return m, 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 4 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return m, 0, false
	}
	m.pid, _ = strconv.Atoi(pid)
	m.group, _ = strconv.Atoi(string(fields[2]))
	session, _ = strconv.Atoi(string(fields[3]))
	return m, session, true
}
