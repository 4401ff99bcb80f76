package sandbox

import "golang.org/x/sys/unix"

var legacyCalls = map[uint32]recordedCall{
	unix.SYS_OPEN:     {1, []pathArg{{noArg, 0, true}}, entryOpen},
	unix.SYS_CREAT:    {noArg, []pathArg{{noArg, 0, true}}, entryOpen},
	unix.SYS_RENAME:   {noArg, []pathArg{{noArg, 0, false}, {noArg, 1, false}}, entryTree},
	unix.SYS_RENAMEAT: {noArg, []pathArg{{0, 1, false}, {2, 3, false}}, entryTree},
	unix.SYS_UNLINK:   {noArg, []pathArg{{noArg, 0, false}}, entryRemoved},
	unix.SYS_RMDIR:    {noArg, []pathArg{{noArg, 0, false}}, entryRemoved},
	unix.SYS_MKDIR:    {noArg, []pathArg{{noArg, 0, false}}, entryFile},
	unix.SYS_MKNOD:    {noArg, []pathArg{{noArg, 0, false}}, entryFile},
	unix.SYS_LINK:     {noArg, []pathArg{{noArg, 1, false}}, entryFile},
	unix.SYS_SYMLINK:  {noArg, []pathArg{{noArg, 1, false}}, entryFile},
	unix.SYS_CHMOD:    {noArg, []pathArg{{noArg, 0, true}}, entryFile},
}
