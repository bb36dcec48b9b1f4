/** A hook of module resolution: `svc` and what is below it are the sources, so that tests have one instance of each. */
const entries = {
  svc: 'kernel/index.ts',
  'svc/plugin': 'kernel/plugin.ts',
  'svc/kit': 'kernel/kit/index.ts',
  'svc/plugins': 'plugins/index.ts',
}

const sourceOf = specifier =>
  entries[specifier] ??
  (specifier.startsWith('svc/')
    ? `${specifier.replace(/^svc\//, '').replace(/^plugins\/([^/]+)$/, 'plugins/$1/api')}.ts`
    : undefined)

export function resolve(specifier, context, next) {
  const source = sourceOf(specifier)
  return next(source === undefined ? specifier : new URL(`../../${source}`, import.meta.url).href, context)
}
