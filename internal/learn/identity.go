package learn

import "context"

// Identify gives an agent of a client the name by which it stands in memory
// that is shared; see memory.Identities. Without one the names are taken as
// they are.
type Identify func(ctx context.Context, client, agent string) (string, error)
