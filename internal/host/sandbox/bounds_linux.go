package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// measureInterval is the interval at which the helper measures a command's processes. Shorter commands cost
// nothing.
const measureInterval = 200 * time.Millisecond

// exceededLimit returns which bound the processes together exceed, or "".
func (b Bounds) exceededLimit(all []process) string {
	tasks, resident := 0, int64(0)
	for _, p := range all {
		tasks += p.threads
		resident += p.resident
	}
	switch {
	case b.Processes > 0 && tasks > b.Processes:
		return fmt.Sprintf("it ran more than %d processes and threads (safety.max_processes)", b.Processes)
	case b.Memory > 0 && resident+sharedMemory(all) > b.Memory && usedMemory(all) > b.Memory:
		return b.memoryMessage()
	}
	return ""
}

// memoryMessage returns the message that processes exceeded their memory.
func (b Bounds) memoryMessage() string {
	return fmt.Sprintf("its processes used more than %d MB of memory (safety.memory_limit_mb)", b.Memory>>20)
}

// usedMemory returns the bytes of memory that would be free without the processes. It counts shared memory
// once, and mapped files not at all. It is slower than [process.resident].
func usedMemory(all []process) (sum int64) {
	mapped := int64(0) // bytes of shared memory
	defer func() { sum += max(mapped, sharedMemory(all)) }()
	for _, p := range all {
		text, err := os.ReadFile("/proc/" + p.number + "/smaps_rollup")
		if err != nil { // not permitted, or already ended
			p, _ = readProcess(p.number)
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

// sharedMemory returns the bytes in anonymous files and shared segments that processes hold, mapped or not.
func sharedMemory(all []process) (sum int64) {
	seen, ours := make(map[uint64]bool), make(map[string]bool)
	for _, p := range all {
		ours[p.number] = true
		dir, err := os.Open("/proc/" + p.number + "/fd")
		if err != nil {
			continue // not permitted
		}
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, name := range names {
			at := "/proc/" + p.number + "/fd/" + name
			var st unix.Stat_t
			if to, err := os.Readlink(at); err != nil || !strings.HasPrefix(to, "/memfd:") || unix.Stat(at, &st) != nil ||
				seen[st.Ino] {
				continue
			}
			seen[st.Ino] = true
			sum += st.Blocks * 512
		}
	}
	return sum + segmentMemory(ours)
}

// segmentMemory returns the bytes in System V segments created by processes. If this is the first process,
// all of them are in its own namespace.
func segmentMemory(made map[string]bool) (sum int64) {
	const creator, resident, swapped = 4, 14, 15
	text, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= swapped || !made[fields[creator]] && os.Getpid() != 1 {
			continue
		}
		for _, field := range []string{fields[resident], fields[swapped]} {
			bytes, _ := strconv.ParseInt(field, 10, 64) // the heading is not a number
			sum += bytes
		}
	}
	return sum
}

// MachineMemory returns the machine's memory in bytes.
func MachineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
