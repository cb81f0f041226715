{{/* The name of all objects: that of the release. */}}
{{- define "lamina.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "lamina.account" -}}
{{- .Values.serviceAccount.name | default (include "lamina.name" .) -}}
{{- end }}

{{- define "lamina.selector" -}}
app.kubernetes.io/name: lamina
app.kubernetes.io/instance: {{ include "lamina.name" . }}
{{- end }}

{{- define "lamina.labels" -}}
{{ include "lamina.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "lamina.image" -}}
{{- required "image is required: build one from the Containerfile, push it, and name it with --set image=registry.example.com/lamina:VERSION" .Values.image -}}
{{- end }}

{{- define "lamina.families" -}}
{{- $names := list -}}
{{- range list "metacontroller" "manifestwork" "objectset" "resourcegraph" -}}
{{- if index $.Values.families . }}{{ $names = append $names . }}{{ end -}}
{{- end -}}
{{- join "," $names | default "none" -}}
{{- end }}

{{- define "lamina.hasWebhook" -}}
{{- if and .Values.webhook.enabled .Values.families.manifestwork }}true{{ end -}}
{{- end }}

{{- define "lamina.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "lamina.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
