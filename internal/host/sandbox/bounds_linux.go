package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lookEvery is how often we look at what a command's processes use. A shorter
// command costs nothing.
const lookEvery = 200 * time.Millisecond

// exceeded says which bound processes exceed together, or nothing.
func (b Bounds) exceeded(all []process) string {
	tasks, resident := 0, int64(0)
	for _, p := range all {
		tasks += p.threads
		resident += p.resident
	}
	switch {
	case b.Processes > 0 && tasks > b.Processes:
		return fmt.Sprintf("it ran more than %d processes and threads (safety.max_processes)", b.Processes)
	case b.Memory > 0 && resident+shared(all) > b.Memory && held(all) > b.Memory:
		return b.memory()
	}
	return ""
}

// memory says that processes used more memory than they may.
func (b Bounds) memory() string {
	return fmt.Sprintf("its processes used more than %d MB of memory (safety.memory_limit_mb)", b.Memory>>20)
}

// held is the memory that would be free without the processes, in bytes. What they
// share counts once, and files that they mapped do not count. It takes the kernel
// longer than [process.resident].
func held(all []process) (sum int64) {
	mapped := int64(0) // of what they share
	defer func() { sum += max(mapped, shared(all)) }()
	for _, p := range all {
		text, err := os.ReadFile("/proc/" + p.number + "/smaps_rollup")
		if err != nil { // nobody may look into it, or it has ended meanwhile
			p, _ = look(p.number)
			sum += p.resident
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) == 3 && (fields[0] == "Pss_Anon:" || fields[0] == "Pss_Shmem:" || fields[0] == "SwapPss:") {
				kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
				if fields[0] == "Pss_Shmem:" {
					mapped += kilobytes << 10
				} else {
					sum += kilobytes << 10
				}
			}
		}
	}
	return sum
}

// shared is the memory in files without a name and in segments that processes hold,
// mapped or not, in bytes.
func shared(all []process) (sum int64) {
	seen, ours := make(map[uint64]bool), make(map[string]bool)
	for _, p := range all {
		ours[p.number] = true
		dir, err := os.Open("/proc/" + p.number + "/fd")
		if err != nil {
			continue // nobody may look into it
		}
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			at := "/proc/" + p.number + "/fd/" + name
			var st unix.Stat_t
			if to, err := os.Readlink(at); err != nil || !strings.HasPrefix(to, "/memfd:") || unix.Stat(at, &st) != nil || seen[st.Ino] {
				continue
			}
			seen[st.Ino] = true
			sum += st.Blocks * 512
		}
	}
	return sum + segments(ours)
}

// segments is the memory in segments of System V that processes made. Where we are the
// first process, all of them are in our own name space.
func segments(made map[string]bool) (sum int64) {
	const creator, resident, swapped = 4, 14, 15
	text, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= swapped || !made[fields[creator]] && os.Getpid() != 1 {
			continue
		}
		for _, field := range []string{fields[resident], fields[swapped]} {
			bytes, _ := strconv.ParseInt(field, 10, 64) // the heading is none
			sum += bytes
		}
	}
	return sum
}

// Memory is how much this machine has, in bytes.
func Memory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
