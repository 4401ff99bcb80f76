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
	case b.Memory > 0 && resident > b.Memory && held(all) > b.Memory:
		return fmt.Sprintf("its processes used more than %d MB of memory (safety.memory_limit_mb)", b.Memory>>20)
	}
	return ""
}

// held is the memory that would be free without the processes, in bytes. What they
// share counts once, and files that they mapped do not count. It takes the kernel
// longer than [process.resident].
func held(all []process) (sum int64) {
	for _, p := range all {
		text, err := os.ReadFile("/proc/" + p.number + "/smaps_rollup")
		if err != nil { // nobody may look into it
			sum += p.resident
			continue
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) == 3 && (fields[0] == "Pss_Anon:" || fields[0] == "Pss_Shmem:" || fields[0] == "SwapPss:") {
				kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
				sum += kilobytes << 10
			}
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
