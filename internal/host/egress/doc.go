// Package egress is the way of a confined command to hosts of the network: a
// proxy that lets connections to some hosts pass. What it promises:
//
//  1. Every connection is admitted by name and port before anything is looked up
//     or sent. A host that is not admitted hears nothing of the command.
//  2. An admitted host is reached at a public address alone, the very one that
//     was checked, unless the user allows others.
//  3. The command has no other way: it has a network of its own, in which the
//     proxy listens, and what it says can name hosts and nothing else.
//  4. Connections, headers and idle time are bounded, and all ends with the
//     command.
//
// What is sent to an admitted host is not looked into: TLS stays what it is
// between the command and the host.
package egress
