/** A hook of module resolution: `svc` and what is below it are the sources, so that tests have one instance of each. */
const entries = { svc: 'kernel/index.ts', 'svc/plugin': 'kernel/plugin.ts', 'svc/plugins': 'plugins/index.ts' }

export function resolve(specifier, context, next) {
  const source = entries[specifier]
  return next(source === undefined ? specifier : new URL(`../../${source}`, import.meta.url).href, context)
}
