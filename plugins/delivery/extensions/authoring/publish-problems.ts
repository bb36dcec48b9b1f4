import { Fault, messageOf, type PluginKernel } from '../../../../kernel/plugin.js'
import { type InstalledExtension, ResourceFamilies } from '../api.js'
import { Families } from '../load/families.js'

/** Reads and publishes the items of an extension, and returns the problems: for reading, all that each family finds. */
export async function publishProblems(kernel: PluginKernel, extension: InstalledExtension): Promise<string[]> {
  const { db, records } = kernel
  const problems: string[] = []
  const tried = (work: Promise<unknown>) => work.catch(error => problems.push(...linesOf(error)))
  const familiesOf = (collect: PluginKernel['collect']) => new Families({ db, records, collect })
  // Each family is read separately, so that a problem of one does not hide those of another.
  for (const family of kernel.collect(ResourceFamilies))
    await tried(
      familiesOf(() => [family] as never)
        .read(extension)
        .then(shipped => problems.push(...shipped.flatMap(({ shipment }) => shipment.leftOut ?? []))),
    )
  if (problems.length > 0) return problems
  const families = familiesOf(kernel.collect)
  await tried(families.read(extension).then(shipped => families.publish(extension, shipped)))
  return problems
}

/** Problems with their place in a file, if the details have such keys; else the message. */
function linesOf(error: unknown): string[] {
  const places = Object.entries(error instanceof Fault ? (error.details ?? {}) : {})
  const lines = places
    .filter(([location]) => /\.(?:toml|json)(?::|$)/.test(location))
    .map(([location, what]) => `${location}: ${what}`)
  return lines.length > 0 ? lines : [messageOf(error)]
}
