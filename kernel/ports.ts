import type { Ports } from './contract/ports.js'

let made = (): Ports => ({})

/** Sets the ports of kernels whose embedder names none. `svc/plugins` calls it with `filePorts` when it is loaded. */
export function portsByDefault(make: () => Ports): void {
  made = make
}

/** The ports of a kernel whose embedder names none. */
export const defaultPorts = (): Ports => made()
