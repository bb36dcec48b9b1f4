import os from 'node:os'

/** Versions of the machine and the runtime. */
export function machineOf(): object {
  const { node, v8, uv, openssl } = process.versions
  const cpus = os.cpus()
  return {
    runtime: { node, v8, uv, openssl, arch: process.arch },
    system: {
      type: os.type(),
      release: os.release(),
      version: os.version(),
      machine: os.machine(),
      cpus: cpus.length,
      cpu: cpus[0]?.model,
      memory_bytes: os.totalmem(),
      free_memory_bytes: os.freemem(),
      uptime_seconds: Math.floor(os.uptime()),
      load: os.loadavg(),
      time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    },
  }
}
