package sandbox

import "golang.org/x/sys/unix"

var legacyCalls = map[uint32]recordedCall{
	unix.SYS_RENAMEAT: {noArg, []pathArg{{0, 1, false}, {2, 3, false}}, entryTree},
}
