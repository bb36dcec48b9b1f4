import type { PermissionOption } from './permission-rules.js'

/** The answer options of the daemon's own questions. */
export const OWN_OPTIONS: readonly PermissionOption[] = (['allow', 'reject'] as const).flatMap(verb =>
  (['once', 'always'] as const).map(scope => ({
    optionId: `${verb}-${scope}`,
    name: `${verb} ${scope}`,
    kind: `${verb}_${scope}`,
  })),
)
