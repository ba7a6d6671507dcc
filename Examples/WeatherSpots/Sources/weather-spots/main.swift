import ArgumentParser
print(1)
