package sandbox

import "fmt"

// OutletPort is the port of an [Outlet] on a command's loopback.
const OutletPort = 27182

// OutletFD is the descriptor by which a helper hands over an [Outlet]'s listener.
const OutletFD = 4

// OutletAddress is the address of an [Outlet] for its command.
var OutletAddress = fmt.Sprintf("127.0.0.1:%d", OutletPort)
